"""The public names of exactgrpo. This stub is what `__init__.py` imports from, at first use."""

from .claims.claim import Claim as Claim
from .claims.registry import claim as claim
from .claims.search import Counterexample as Counterexample
from .claims.verdict import Verdict as Verdict, falsify as falsify, necessary as necessary, need as need, verify as verify
from .errors import (
    ClaimError as ClaimError,
    DomainError as DomainError,
    DrawError as DrawError,
    ExactGRPOError as ExactGRPOError,
    InexactInputError as InexactInputError,
    InputError as InputError,
    LimitError as LimitError,
    ParseError as ParseError,
    PolicyError as PolicyError,
    PromptError as PromptError,
    ReferenceMassError as ReferenceMassError,
    RewardError as RewardError,
    ThetaError as ThetaError,
    UndecidedError as UndecidedError,
    UpdateError as UpdateError,
)
from .numbers.arithmetic import Arithmetic as Arithmetic, Column as Column, Matrix as Matrix, Rows as Rows
from .numbers.decision import Proof as Proof, Sign as Sign
from .numbers.rational import dyadic as dyadic
from .numbers.real import Real as Real
from .policies.expression import Expressions as Expressions
from .policies.family import Policy as Policy, PolicyFamily as PolicyFamily
from .policies.protocol import GenerationProtocol as GenerationProtocol
from .policies.rational import Rational as Rational
from .policies.simplex import Simplex as Simplex
from .policies.softmax import Softmax as Softmax
from .policies.tokens import Tokens as Tokens
from .rac.queue import DelayQueue as DelayQueue
from .spec.build import load_problem as load_problem
from .update.clip import ClipTerm as ClipTerm, clip_term as clip_term
from .update.divergence import kl_policy_from_reference as kl_policy_from_reference
from .update.draws import Seed as Seed, Tape as Tape
from .update.groups import advantages as advantages, population_std as population_std
from .update.literal import FrozenData as FrozenData, Outcome as Outcome, run_procedure as run_procedure
from .update.loop import Counts as Counts
from .update.point import evaluate_at as evaluate_at
from .update.problem import Problem as Problem, Prompt as Prompt
from .update.ratio import sequence_ratio as sequence_ratio
from .update.reference import (
    ReferenceLogits as ReferenceLogits,
    ReferenceMasses as ReferenceMasses,
    ReferenceParameter as ReferenceParameter,
)
from .update.run import Run as Run, run as run
from .update.trace import Decision as Decision, Evidence as Evidence, Step as Step, Term as Term
