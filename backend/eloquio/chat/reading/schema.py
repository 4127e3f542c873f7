"""The HTTP shapes of embeddings, reranking and the small questions to an engine."""

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from eloquio.errors import InvalidRequest

MAX_INPUTS = 2048
"""As many texts as OpenAI takes in one request."""
_MAX_TOKEN = 2**31 - 1

Token = Annotated[StrictInt, Field(ge=0, le=_MAX_TOKEN)]
Text = Annotated[str, Field(min_length=1)]
Tokens = Annotated[list[Token], Field(min_length=1)]
_Inputs = Text | Annotated[list[Text] | Tokens | list[Tokens], Field(min_length=1)]


def _with_one_sentence(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    """What is wrong with it in one sentence, instead of one for each shape that it hasn't."""
    if isinstance(value, list) and len(value) > MAX_INPUTS and not isinstance(value[0], int):
        raise InvalidRequest(
            f"input holds {len(value)} texts; {MAX_INPUTS} can be asked for at once.",
            param="input",
            next_step="Send them in several requests.",
        )
    try:
        valid: object = validate(value)
        return valid
    except ValidationError as error:
        raise InvalidRequest(
            "input has to be a text, a list of texts, a list of tokens or a list of such lists,"
            " and nothing in it may be empty.",
            param="input",
        ) from error


class _ForEngine(BaseModel):
    """A field that nobody here knows is refused: it would be dropped in silence."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = None
    """Missing: the model of the fitting kind that was loaded last."""
    cancel_id: str | None = Field(default=None, min_length=1, max_length=128)
    """By which `POST /cancel` finds the request."""


class EmbeddingRequest(_ForEngine):
    """OpenAI's request for embeddings."""

    input: Annotated[_Inputs, WrapValidator(_with_one_sentence)]
    encoding_format: Literal["float", "base64"] | None = None
    """`base64` is that of little-endian 32-bit floats."""
    dimensions: Annotated[StrictInt, Field(ge=1)] | None = None
    """Only as many as the model's vectors have."""
    user: str | None = None

    def inputs(self) -> list[str | list[int]]:
        """The texts, each as itself or as its tokens."""
        if isinstance(self.input, str):
            return [self.input]
        if isinstance(self.input[0], int):
            return [[token for token in self.input if isinstance(token, int)]]
        return [each for each in self.input if not isinstance(each, int)]


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str


class RerankRequest(_ForEngine):
    """A reranker's request, as Jina and Cohere have it."""

    query: Text
    documents: list[str | Document] = Field(min_length=1)
    top_n: Annotated[StrictInt, Field(ge=1)] | None = None
    """How many of the best are answered; missing: all."""
    return_documents: bool | None = None
    """Whether each result brings its document's text."""

    def texts(self) -> list[str]:
        return [each if isinstance(each, str) else each.text for each in self.documents]


class TokenizeRequest(_ForEngine):
    content: str | list[str | Token]
    """A text, or parts of one of which some are tokens already."""
    add_special: bool | None = None
    """Whether the tokens by which the model begins a text are added."""
    parse_special: bool | None = None
    """Whether a control token's name is taken as that token, as it is unless this is false."""
    with_pieces: bool | None = None
    """Whether each token comes with its text."""


class DetokenizeRequest(_ForEngine):
    tokens: list[Token]


class AdapterScale(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: Annotated[StrictInt, Field(ge=0)]
    scale: float = Field(allow_inf_nan=False)
    """0 leaves the adapter out, 1 is as it was trained."""


class Embedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class ReadingUsage(BaseModel):
    prompt_tokens: int = 0
    total_tokens: int = 0


class EmbeddingReply(BaseModel):
    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: ReadingUsage


class Ranked(BaseModel):
    index: int
    """The document's place in the request."""
    relevance_score: float
    document: Document | None = None


class RerankReply(BaseModel):
    object: Literal["list"] = "list"
    model: str
    results: list[Ranked]
    """The most relevant first."""
    usage: ReadingUsage


class TokenPiece(BaseModel):
    id: int
    piece: str | list[int]
    """Its text, or its bytes where they are no whole characters."""


class TokenizeReply(BaseModel):
    tokens: list[int] | list[TokenPiece]


class DetokenizeReply(BaseModel):
    content: str


class TemplateReply(BaseModel):
    prompt: str


class TokenCountReply(BaseModel):
    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


class Adapter(BaseModel):
    model_config = ConfigDict(extra="allow")

    id: int
    path: str
    """The file's name alone."""
    scale: float


class ScaledReply(BaseModel):
    success: bool
