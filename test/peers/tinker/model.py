"""model.py FOLDER: a Qwen3 of hidden 64 and 2 layers from random initialisation, with a tokenizer of 256 bytes."""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

folder = sys.argv[1]
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
vocabulary = {word: i for i, word in enumerate([*letters, *specials])}
plain = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
plain.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=plain, eos_token="<|im_end|>", pad_token="<|endoftext|>", additional_special_tokens=specials[1:2]
)
tokenizer.chat_template = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
tokenizer.save_pretrained(folder)

torch.manual_seed(7)
config = Qwen3Config(
    vocab_size=320,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=2048,
    tie_word_embeddings=False,
    # Sharper than training starts from: log-probs that are all alike would hide a wrong target.
    initializer_range=0.1,
    bos_token_id=None,
    eos_token_id=vocabulary["<|im_end|>"],
    pad_token_id=vocabulary["<|endoftext|>"],
)
Qwen3ForCausalLM(config).to(torch.float32).save_pretrained(folder, safe_serialization=True)
