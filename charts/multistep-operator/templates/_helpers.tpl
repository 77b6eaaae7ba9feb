{{- define "multistep.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "multistep.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "multistep.labels" -}}
{{ include "multistep.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "multistep.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "multistep.name" .) }}
{{- end -}}

{{- define "multistep.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What the operator may do where trials live. No secrets, no exec. */}}
{{- define "multistep.rules" -}}
- apiGroups: [multistep.dev]
  resources: [multisteptrials]
  verbs: [get, list, watch, delete]
- apiGroups: [multistep.dev]
  resources: [multisteptrials/status]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete, deletecollection]
# Rewards that are too large for a termination message are read from the end of the verifier's log.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, create, patch, delete]
# Task bundles are read; the snapshot of a trial's task is created. No list, no watch.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create]
# Created also where nothing is known to enforce them, with spec.networkPolicy.enforcement BestEffort.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create]
{{- if eq .Values.networkPolicy.engine "Cilium" }}
- apiGroups: [cilium.io]
  resources: [ciliumnetworkpolicies]
  verbs: [get, create]
{{- end }}
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end -}}
