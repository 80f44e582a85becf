"""Claims about late rewards, true and false."""

from exactgrpo.claims.catalogue import delayed_clip, delayed_groups, delayed_vtrace, policy_shift

CLAIMS = (*delayed_clip.CLAIMS, *delayed_vtrace.CLAIMS, *policy_shift.CLAIMS, *delayed_groups.CLAIMS)
