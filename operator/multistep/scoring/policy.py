"""What an error means: whether the step is graded all the same, whether its reward is valid, whether a retry may help.

Harbor's table, by exact class name (`tests/parity/vectors/error_policy.json`), and beside it our own errors.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ErrorPolicy(BaseModel):
    """The policy of one error type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    should_retry: bool
    should_grade: bool
    has_valid_reward: bool


class PolicyOverride(BaseModel):
    """A partial policy that a user sets for an error type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    should_retry: bool | None = None
    should_grade: bool | None = None
    has_valid_reward: bool | None = None


def _policy(retry: bool, grade: bool, valid: bool) -> ErrorPolicy:
    return ErrorPolicy(should_retry=retry, should_grade=grade, has_valid_reward=valid)


UNKNOWN = _policy(retry=True, grade=True, valid=True)
"""The reference's policy for a class it does not know."""

_GRADED_VALID = """
    AgentSafetyRefusalError AgentTimeoutError ContentPolicyViolationError ContextLengthExceededError ContextWindowExceededError
    NonZeroAgentExitCodeError OutputLengthExceededError OutputTokenExceededError
"""
_GRADED_INVALID = """
    APIResponseValidationError BadRequestError BudgetExceededError RewardFileEmptyError RewardFileNotFoundError
    UnprocessableEntityError UnsupportedModelParametersError UnsupportedParamsError VerifierOutputParseError VerifierTimeoutError
"""
_NOT_GRADED = """
    AgentAuthenticationError ApiProviderResourceNotFoundError AuthenticationError CancelledError DspyImportError MissingExtraError
    ModelNotFoundError NotFoundError PermissionDeniedError RegradeError ServiceOperationsUnsupportedError VercelScopeError
"""
_RETRIED_GRADED = """
    APIConnectionError APIError ApiConnectionClosedError ApiConnectionError ApiError ApiInternalServerError ApiOverloadedError
    ApiRateLimitError ApiResponseStalledError ApiUsageLimitError InternalServerError NetworkConnectionError RateLimitError
    ServiceUnavailableError Timeout UnknownApiError
"""
_RETRIED_NOT_GRADED = """
    AddTestsDirError AgentSetupTimeoutError DownloadVerifierDirError EnvironmentStartTimeoutError GKEExecStreamClosedError
    GKEPodNotFoundError HealthcheckError MemoryLimitExceededError RuntimeRequestError SSHAccessError SandboxBuildFailedError
    SandboxLikelyOutOfMemoryError
"""

_REFERENCE = {
    name: policy
    for names, policy in (
        (_GRADED_VALID, _policy(retry=False, grade=True, valid=True)),
        (_GRADED_INVALID, _policy(retry=False, grade=True, valid=False)),
        (_NOT_GRADED, _policy(retry=False, grade=False, valid=False)),
        (_RETRIED_GRADED, _policy(retry=True, grade=True, valid=False)),
        (_RETRIED_NOT_GRADED, _policy(retry=True, grade=False, valid=False)),
    )
    for name in names.split()
}

# Errors that Harbor has no name for. What is not the agent's doing is never graded: a wrong reward that looks right is the worst result.
_OWN = {
    "AgentOutOfMemoryError": _policy(retry=False, grade=True, valid=True),
    **dict.fromkeys(
        (
            "DeadlineExceededError",
            "PodStartError",
            "PrepareError",
            "SetupError",
            "SolutionNotFoundError",
            "CarryError",
            "RunnerError",
            "WorkdirError",
            "StepPodError",
            "UserNotFoundError",
            "VerifierOutOfMemoryError",
            "VerifierPodError",
        ),
        _policy(retry=False, grade=False, valid=False),
    ),
    "InfrastructureError": _policy(retry=True, grade=False, valid=False),
}


def error_policy(error_type: str, override: PolicyOverride | None = None) -> ErrorPolicy:
    """Return the policy of an error type, by its exact name; fields that an override sets win."""
    policy = _REFERENCE.get(error_type) or _OWN.get(error_type) or UNKNOWN
    return policy if override is None else policy.model_copy(update=override.model_dump(exclude_none=True))


def is_known(error_type: str) -> bool:
    """Whether the reference knows this error type."""
    return error_type in _REFERENCE
