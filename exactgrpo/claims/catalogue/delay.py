"""Claims about late rewards, true and false."""

from exactgrpo.claims.catalogue import delayed_bias, delayed_clip, delayed_groups, delayed_kernels, delayed_vtrace, policy_shift

CLAIMS = (
    *delayed_bias.CLAIMS,
    *delayed_kernels.CLAIMS,
    *delayed_clip.CLAIMS,
    *delayed_vtrace.CLAIMS,
    *policy_shift.CLAIMS,
    *delayed_groups.CLAIMS,
)
