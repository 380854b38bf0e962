"""Second oracle of the hyper-connection operators, numpy float64, written from the formulas alone.

It shares no code with the library and is the check of `ref`. Arrays are float64 and hold the exact
values of the stored inputs. Shapes: residual [T,n,H], fn [N,n*H], post_mix [T,n],
comb_mix [T,source,destination], N = n*(n+2), logits in the order pre, post, comb (row-major).
`storage` ("f64", "f32", "f16", "bf16") names the format to which the new residual and the layer
input are rounded; nothing else is rounded. "f64" rounds nothing.
"""
from dataclasses import dataclass

import numpy as np

from storage import round_to

SLICE_BLOCK = 64  # the projection is cut into slices at multiples of this many columns


@dataclass(frozen=True)
class Consts:
    rms_eps: float
    pre_eps: float
    sinkhorn_eps: float
    post_mult: float
    sinkhorn_iters: int
    norm_eps: float = 0.0

    def __getattribute__(self, name):
        """Floats are read at float32 precision, since the library receives them as float32."""
        value = object.__getattribute__(self, name)
        return float(np.float32(value)) if isinstance(value, float) else value


def expand(hidden, streams):
    return np.repeat(hidden[:, None, :], streams, axis=1)


def slice_bounds(columns, splits):
    """Column range of each slice: whole blocks, the remainder one each to the first slices."""
    blocks = -(-columns // SLICE_BLOCK)
    sizes = [blocks // splits + (1 if s < blocks % splits else 0) for s in range(splits)]
    ends = np.minimum(np.cumsum(sizes) * SLICE_BLOCK, columns)
    return list(zip([0, *ends[:-1]], ends))


def project(residual, fn, splits=1):
    """dot_mix [S,T,N] and sqrsum [S,T] of the raw streams."""
    flat = residual.reshape(len(residual), fn.shape[1])
    parts = [(flat[:, a:b], fn[:, a:b]) for a, b in slice_bounds(flat.shape[1], splits)]
    return np.stack([x @ w.T for x, w in parts]), np.stack([np.sum(x * x, axis=1) for x, _ in parts])


def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


def sinkhorn(logits, consts):
    """logits [T,n,n] -> comb_mix. The softmax is the first row step; every round ends on columns."""
    eps = consts.sinkhorn_eps
    with np.errstate(invalid="ignore", divide="ignore"):
        e = np.exp(logits - logits.max(axis=2, keepdims=True))
        comb = e / e.sum(axis=2, keepdims=True) + eps
        comb = comb / (comb.sum(axis=1, keepdims=True) + eps)
        for _ in range(consts.sinkhorn_iters - 1):
            comb = comb / (comb.sum(axis=2, keepdims=True) + eps)
            comb = comb / (comb.sum(axis=1, keepdims=True) + eps)
    return comb


def scaled_logits(dot_mix, sqrsum, scale, base, columns, consts, groups):
    """Adds the slices, applies the RMS of the whole flattened row, then the affine map per group."""
    mean_square = sqrsum.sum(axis=0) / columns
    with np.errstate(divide="ignore", invalid="ignore"):
        mixes = dot_mix.sum(axis=0) / np.sqrt(mean_square + consts.rms_eps)[:, None]
    return mixes * np.repeat(scale, groups) + base


def coefficients(dot_mix, sqrsum, scale, base, streams, columns, consts):
    n = streams
    logits = scaled_logits(dot_mix, sqrsum, scale, base, columns, consts, [n, n, n * n])
    pre_mix = sigmoid(logits[:, :n]) + consts.pre_eps
    post_mix = consts.post_mult * sigmoid(logits[:, n : 2 * n])
    return pre_mix, post_mix, sinkhorn(logits[:, 2 * n :].reshape(-1, n, n), consts)


def collapse(residual, mix, storage, consts=None, norm="none", norm_weight=None):
    """sum_j mix_j R_j, rounded once; with a norm, the normalised row instead.

    "engine": square sum of the unrounded row, product of the rounded one. "unfused": both rounded.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        y = np.einsum("tj,tjh->th", mix, residual)
        rounded = round_to(y, storage)
        if norm == "none":
            return rounded
        square = np.mean((y if norm == "engine" else rounded) ** 2, axis=1, keepdims=True)
        weight = 1.0 if norm_weight is None else norm_weight
        return round_to(rounded / np.sqrt(square + consts.norm_eps) * weight, storage)


def finish(dot_mix, sqrsum, residual, scale, base, consts, storage="f64", norm="none", norm_weight=None,
           pre_in=None):
    """Coefficients and layer input. With `pre_in` the collapse uses it and pre_mix is for the next site."""
    _, n, hidden = residual.shape
    pre_mix, post_mix, comb_mix = coefficients(dot_mix, sqrsum, scale, base, n, n * hidden, consts)
    mix = pre_mix if pre_in is None else pre_in
    layer_input = collapse(residual, mix, storage, consts, norm, norm_weight)
    return {"pre_mix": pre_mix, "post_mix": post_mix, "comb_mix": comb_mix, "layer_input": layer_input}


def pre(residual, fn, scale, base, consts, splits=1, **options):
    return finish(*project(residual, fn, splits), residual, scale, base, consts, **options)


def post(residual, sublayer_output, post_mix, comb_mix, storage="f64"):
    with np.errstate(invalid="ignore", over="ignore"):
        mixed = np.einsum("tjk,tjh->tkh", comb_mix, residual)
        return round_to(mixed + post_mix[:, :, None] * sublayer_output[:, None, :], storage)


def seam(residual, sublayer_output, post_mix, comb_mix, fn, scale, base, consts, storage="f64", **options):
    """post of one site, then pre of the next on the rounded residual."""
    new = post(residual, sublayer_output, post_mix, comb_mix, storage)
    return {"residual_out": new, **pre(new, fn, scale, base, consts, storage=storage, **options)}


def head(residual, fn, scale, base, consts, storage="f64", norm="none", norm_weight=None):
    """Collapse by its own n logits, without post, comb or a normalisation of the mix."""
    _, n, hidden = residual.shape
    logits = scaled_logits(*project(residual, fn), scale, base, n * hidden, consts, [n])
    pre_mix = sigmoid(logits) + consts.pre_eps
    return {"pre_mix": pre_mix, "layer_input": collapse(residual, pre_mix, storage, consts, norm, norm_weight)}


def contract_mean(residual, storage="f64", consts=None, norm="none", norm_weight=None):
    mix = np.full(residual.shape[:2], 1.0 / residual.shape[1])
    return collapse(residual, mix, storage, consts, norm, norm_weight)


def contract_mix(residual, mix, storage="f64", consts=None, norm="none", norm_weight=None):
    return collapse(residual, mix, storage, consts, norm, norm_weight)
