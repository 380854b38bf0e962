"""Random inputs of every operator on three data families, and the oracle's answer for them.

All arrays are float64 on the grid of the dtype in which the library reads them ("coefficient" names
that of partials and coefficients), and every mixing matrix is non-symmetric.
"""
import numpy as np

import oracle
from storage import round_to

FAMILIES = ("normal", "outlier_channels", "log_normal")
CONSTS = oracle.Consts(rms_eps=1e-6, pre_eps=1e-6, sinkhorn_eps=1e-6, post_mult=2.0, sinkhorn_iters=20, norm_eps=1e-5)
# Large and unequal constants, so that leaving one out or putting it elsewhere shows.
LOUD_CONSTS = oracle.Consts(rms_eps=0.25, pre_eps=0.03, sinkhorn_eps=0.02, post_mult=1.75, sinkhorn_iters=3,
                            norm_eps=0.5)


def draw(rng, family, shape):
    """N(0,1); the same with 1 % of the channels (at least one) times 100..1000; log-normal with signs."""
    x = rng.standard_normal(shape)
    if family == "outlier_channels":
        channels = rng.choice(shape[-1], max(1, shape[-1] // 100), replace=False)
        x[..., channels] *= rng.uniform(100, 1000, channels.size)
    elif family == "log_normal":
        x = np.sign(x) * np.exp(2 * rng.standard_normal(shape))
    return x


def make_inputs(seed, family, tokens, streams, hidden, storage="f64", norm_weight_storage="f32", logit_scale=1.0):
    """Everything that any operator reads. Logits have standard deviation near `logit_scale`."""
    rng = np.random.default_rng(seed)
    n, flat = streams, streams * hidden
    logits = n * (n + 2)
    coefficient = "f64" if storage == "f64" else "f32"

    def normal(*shape, grid="f32"):
        return round_to(rng.standard_normal(shape), grid)

    return {
        "coefficient": coefficient,
        "embedding": round_to(draw(rng, family, (tokens, hidden)), storage),
        "residual": round_to(draw(rng, family, (tokens, n, hidden)), storage),
        "sublayer_output": round_to(draw(rng, family, (tokens, hidden)), storage),
        "fn": round_to(rng.standard_normal((logits, flat)) / np.sqrt(flat), "f32"),
        "scale": round_to(logit_scale * np.array([1.0, -0.75, 1.25]), "f32"),
        "base": normal(logits),
        "head_fn": round_to(rng.standard_normal((n, flat)) / np.sqrt(flat), "f32"),
        "head_scale": round_to(np.array([1.1]), "f32"),
        "head_base": normal(n),
        "post_in": normal(tokens, n, grid=coefficient),
        "comb_in": round_to(rng.random((tokens, n, n)), coefficient),
        "pre_in": normal(tokens, n, grid=coefficient),
        "norm_weight": normal(hidden, grid=norm_weight_storage),
    }


WEIGHTS = ("fn", "scale", "base")


def arguments(op, data, norm="none", carried_pre=False, splits=1):
    """The inputs of one operator under the names of fmhc_args."""
    names = {"expand": (), "project": ("residual", "fn"), "finish": ("residual", "scale", "base"),
             "pre": ("residual", *WEIGHTS), "post": ("residual", "sublayer_output", "post_in", "comb_in"),
             "seam": ("residual", "sublayer_output", "post_in", "comb_in", *WEIGHTS), "head": ("residual",),
             "contract": ("residual",)}[op]
    inputs = {name: data[name] for name in names}
    if op == "expand":
        inputs["residual"] = data["embedding"]
    if op == "head":
        inputs.update({name: data[f"head_{name}"] for name in WEIGHTS})
    if op == "finish":
        parts = oracle.project(data["residual"], data["fn"], splits)
        inputs["dot_mix_in"], inputs["sqrsum_in"] = (round_to(part, data["coefficient"]) for part in parts)
    if norm != "none":
        inputs["norm_weight"] = data["norm_weight"]
    if carried_pre:
        inputs["pre_in"] = data["pre_in"]
    return inputs


def expected(op, inputs, streams, consts, storage="f64", norm="none", splits=1):
    """The oracle's outputs for `inputs`, under the names of fmhc_args."""
    weights = [inputs.get(name) for name in WEIGHTS]
    norming = {"norm": norm, "norm_weight": inputs.get("norm_weight")}
    residual, pre_in = inputs["residual"], inputs.get("pre_in")
    post_inputs = [inputs.get(name) for name in ("sublayer_output", "post_in", "comb_in")]
    if op == "expand":
        return {"residual_out": oracle.expand(residual, streams)}
    if op == "project":
        return dict(zip(("dot_mix", "sqrsum"), oracle.project(residual, inputs["fn"], splits)))
    if op == "finish":
        return oracle.finish(inputs["dot_mix_in"], inputs["sqrsum_in"], residual, *weights[1:], consts, storage,
                             pre_in=pre_in, **norming)
    if op == "pre":
        return oracle.pre(residual, *weights, consts, storage=storage, pre_in=pre_in, **norming)
    if op == "post":
        return {"residual_out": oracle.post(residual, *post_inputs, storage)}
    if op == "seam":
        return oracle.seam(residual, *post_inputs, *weights, consts, storage, pre_in=pre_in, **norming)
    if op == "head":
        return oracle.head(residual, *weights, consts, storage, **norming)
    if pre_in is None:
        return {"layer_input": oracle.contract_mean(residual, storage, consts, **norming)}
    return {"layer_input": oracle.contract_mix(residual, pre_in, storage, consts, **norming)}
