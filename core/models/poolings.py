"""Where a classification head may read; "auto" is [CLS] for encoders and the last real token for decoders."""

POOLINGS = ("auto", "cls", "sep", "mean", "last")
