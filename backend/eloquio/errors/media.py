"""Pictures: those that come with a request, and those at an address."""

from eloquio.errors.root import EloquioError


class InvalidImage(EloquioError):
    """A picture is no base64, or it is cut off or damaged: it can't be decoded."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_image"
    next_step = "Send the whole file, in base64, as a data URL."


class ImageFormatUnsupported(EloquioError):
    """A picture is of a kind that can't be read, or is no picture at all."""

    status = 415
    type = "invalid_request_error"
    code = "image_format_unsupported"
    next_step = "Send it as PNG, JPEG, WebP, AVIF, HEIC, GIF, TIFF or BMP."


class ImageTooLarge(EloquioError):
    """A picture has more pixels, or more bytes, than are taken."""

    status = 413
    type = "invalid_request_error"
    code = "image_too_large"
    next_step = "Make it smaller and send it again: a model sees no more in a larger one."


class RemoteMediaRefused(EloquioError):
    """A picture was named by an address from which nothing is fetched."""

    status = 400
    type = "invalid_request_error"
    code = "remote_media_refused"
    next_step = "Send the file itself, as a data URL."


class RemoteMediaFailed(EloquioError):
    """What lies at a public address couldn't be fetched, in time and within the bounds."""

    status = 400
    type = "invalid_request_error"
    code = "remote_media_failed"
    next_step = "Compare the address, or send the file itself, as a data URL."
