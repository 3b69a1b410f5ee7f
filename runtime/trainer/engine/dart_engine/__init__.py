"""A single-GPU engine that trains and samples one vision-language model in one process.

It speaks the Tinker protocol (protobuf and JSON) and OpenAI chat completions with images.
`python -m dart_engine serve --help` lists the options; runtime/trainer/engine/README.md explains them.
"""

ENGINE_VERSION = "0.2.0"
