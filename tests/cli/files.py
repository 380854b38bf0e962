"""Safetensors files put together by hand, recorded ones, and runs of the tool that check the exit code."""
import json
import struct

import tool

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}


def run(*arguments, code=0):
    """The finished process of the tool, which must end with this exit code."""
    done = tool.run(*arguments)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit {done.returncode}, wanted {code}\n{done.stdout}{done.stderr}")
    return done


def recorded(name):
    return str(tool.SOURCE / "tests" / "data" / f"{name}.safetensors")


def save(path, tensors, metadata=None):
    """tensors: name -> (dtype, shape, bytes or None for zeros)."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        count = SIZES[dtype]
        for extent in shape:
            count *= extent
        content = bytes(count) if content is None else content
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + count]}
        data += content
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    return path


def load(path):
    """(metadata, name -> [dtype, shape, bytes]) of a good file."""
    with open(path, "rb") as f:
        content = f.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    data = content[8 + length :]
    return metadata, {k: [v["dtype"], v["shape"], data[slice(*v["data_offsets"])]] for k, v in header.items()}
