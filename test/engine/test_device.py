"""Which device `auto` is."""

import pytest
import torch

from dart_engine import model


@pytest.fixture
def no_cuda(monkeypatch):
    """A machine with a GPU whose driver is too old for this torch."""

    def too_old():
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 12020).\nMore.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", too_old)
    monkeypatch.setattr(model.Path, "exists", lambda path: str(path) == "/dev/nvidia0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return monkeypatch


def test_a_gpu_that_torch_cannot_use_is_refused(no_cuda):
    with pytest.raises(model.NoCuda, match=r"too old \(found version 12020\)\. Update the NVIDIA driver \(580 or newer\), or set the device to cpu"):
        model.choose_device("auto")
    assert model.choose_device("cpu").type == "cpu"


def test_a_gpu_that_is_hidden_is_none(no_cuda):
    no_cuda.setenv("CUDA_VISIBLE_DEVICES", "")
    assert model.choose_device("auto").type == "cpu"


def test_without_a_gpu_it_is_the_processor(no_cuda):
    no_cuda.setattr(model.Path, "exists", lambda path: False)
    assert model.choose_device("auto").type == "cpu"
