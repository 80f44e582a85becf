"""The audit of the update: what is claimed of it, and what is not."""

from exactgrpo.claims.catalogue import groups, measures, nonclaims, runs, terms

CLAIMS = (*groups.CLAIMS, *measures.CLAIMS, *terms.CLAIMS, *runs.CLAIMS, *nonclaims.CLAIMS)
