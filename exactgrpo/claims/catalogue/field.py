"""Claims about the field, true and false."""

from exactgrpo.claims.catalogue import advantage_conventions, kl_estimators, ratio_conventions, return_conventions, surrogate_conventions

CLAIMS = (
    *kl_estimators.CLAIMS,
    *ratio_conventions.CLAIMS,
    *advantage_conventions.CLAIMS,
    *surrogate_conventions.CLAIMS,
    *return_conventions.CLAIMS,
)
