# syntax=docker/dockerfile:1
# The operator's image. Where no registry can be reached, give a base image with Python 3.11 or newer: --build-arg BASE_IMAGE=...
ARG BASE_IMAGE=python:3.13-slim-bookworm

FROM ${BASE_IMAGE} AS tools
RUN apt-get update -q && apt-get install -yq --no-install-recommends busybox-static gosu python3-venv python3-pip
# What the runner needs inside the containers of a task's image: static programs only, whatever that image holds.
RUN mkdir -p /opt/multistep/bin/applets \
    && cp /bin/busybox /opt/multistep/bin/busybox \
    && cp /usr/sbin/gosu /opt/multistep/bin/gosu \
    && for applet in $(busybox --list); do ln -s ../busybox "/opt/multistep/bin/applets/$applet"; done

FROM tools AS build
WORKDIR /src
# Wheels are taken from build/wheels only where the build says so (hack/images.sh): those of one Python do not fit another base image.
ARG WHEELS_ONLY=""
COPY pyproject.toml build/wheels* /src/wheels/
# Dependencies first: a change of the source does not install them again.
RUN python3 -m venv /opt/multistep/venv \
    && python3 -c 'import tomllib; print("\n".join(tomllib.load(open("/src/wheels/pyproject.toml", "rb"))["project"]["dependencies"]))' > /src/requirements.txt \
    && /opt/multistep/venv/bin/pip install --no-cache-dir --no-compile ${WHEELS_ONLY:+--no-index --find-links=/src/wheels} -r /src/requirements.txt
COPY operator/multistep /opt/multistep/lib/multistep
RUN mv /opt/multistep/lib/multistep/runner /tmp/runner \
    && mkdir -p /opt/multistep/lib/multistep/runner && cp /tmp/runner/__init__.py /opt/multistep/lib/multistep/runner/ \
    && mkdir -p /opt/multistep/bin/runner && cp /tmp/runner/*.sh /opt/multistep/bin/runner/ \
    && echo /opt/multistep/lib > "$(/opt/multistep/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/multistep.pth" \
    && /opt/multistep/venv/bin/pip uninstall -yq pip \
    && /opt/multistep/venv/bin/python -m compileall -q /opt/multistep

FROM ${BASE_IMAGE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="multistep-operator" \
      org.opencontainers.image.description="Runs multi-step agent evaluations in Harbor's task format on Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /opt/multistep /opt/multistep
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PATH=/opt/multistep/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER 65532:65532
ENTRYPOINT ["/opt/multistep/venv/bin/python", "-m", "multistep"]
CMD ["run"]
