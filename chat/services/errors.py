"""What a verb answers when it will not: a code of the wire, no facts of what people wrote."""

from chat.protocol import ErrorCode


class VerbRefused(Exception):
    """The verb cannot be done; doors turn the code into an error event or a status."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(str(code))
        self.code = code
