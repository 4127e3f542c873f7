"""The request itself: its shape, its address, and who may send it."""

from eloquio.errors.root import EloquioError


class InvalidRequest(EloquioError):
    """A field is missing or holds what it may not; `param` names it where it is known."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_request"
    next_step = "Mend the field that is named and send it again; /openapi.json describes them all."


class BodyTooLarge(EloquioError):
    """The request's body is larger than the server takes."""

    status = 413
    type = "invalid_request_error"
    code = "body_too_large"
    next_step = "Shorten the conversation, or send smaller pictures."


class NotFound(EloquioError):
    """No route has this address."""

    status = 404
    type = "invalid_request_error"
    code = "not_found"
    next_step = "Compare the address with those that /openapi.json lists."


class MethodNotAllowed(EloquioError):
    """The address is right, but is asked in another way: GET instead of POST, say."""

    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"
    next_step = "The Allow header names the methods of this address."


class NotImplementedHere(EloquioError):
    """A field or a route of OpenAI's or Anthropic's that Eloquio knows but doesn't support."""

    status = 501
    type = "invalid_request_error"
    code = "not_implemented"
    next_step = "Leave it out."


class HostRefused(EloquioError):
    """The request names a host that isn't this machine: a web page that pretends to be it, say."""

    status = 403
    type = "permission_error"
    code = "host_not_allowed"
    next_step = "Ask by localhost or an IP address, or name the host in ELOQUIO_ALLOWED_HOSTS."


class OriginRefused(EloquioError):
    """A page of another web site sent the request."""

    status = 403
    type = "permission_error"
    code = "cross_site_request"
    next_step = "A web page of another site may not drive Eloquio; use its own page or a script."


class KeyRequired(EloquioError):
    """The server is open to other machines, or has a key of its own, and none was sent."""

    status = 401
    type = "authentication_error"
    code = "key_required"
    next_step = "Send the key as 'Authorization: Bearer …'; `eloquio key` prints it."


class KeyRefused(EloquioError):
    """The key that was sent isn't the server's."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"
    next_step = "Compare it with the one that `eloquio key` prints."


class TooManyAttempts(EloquioError):
    """Ten wrong keys in a minute from one address."""

    status = 429
    type = "rate_limit_error"
    code = "too_many_attempts"
    next_step = "Wait a minute, then send the key that `eloquio key` prints."


class PersonOnly(EloquioError):
    """A script's key asked to change what only the person may change."""

    status = 403
    type = "permission_error"
    code = "person_only"
    next_step = "Sign in on the page and change it there."
