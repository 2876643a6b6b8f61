"""Rewards as Python functions, as other programs have them: job files name one of them by

    reward: { type: python, function: rewards/digits.py:compute_score }

The names of a function's parameters say how it is called (docs/guides/rewards.md).
"""


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    """verl's form: the share of digits that are right, 1 only for the whole answer."""
    answer = str(ground_truth)
    right = sum(c == a for c, a in zip(solution_str, answer))
    if solution_str == answer:
        score = 1.0
    elif len(solution_str) == len(answer):
        score = 0.5 * right / len(answer)
    else:
        score = 0.0
    return {"score": score, "digits": right, "pred": solution_str}


def short(completions, **columns):
    """TRL's form: a list of completions, and a number for each."""
    return [1.0 if len(completion) <= 4 else 0.0 for completion in completions]
