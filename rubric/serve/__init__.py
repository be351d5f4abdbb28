"""The encoder process: embeddings and the crisis screen over loopback HTTP, on onnxruntime.

`python -m rubric.serve --model DIR --port N` starts it from a folder that `training.recipes.encoder_export` wrote.
Web and workers reach it through `rubric.EncoderClient` only.
"""
