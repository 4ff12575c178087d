"""Replicas that outlive each other: their recipes, and what is lost with one."""

from end_to_end import support

BATCH = 16  # of each
DONE_WITH_FEWER = 77


def async_sync(steps=4, staleness=2):
    return {"name": "async", "steps": steps, "staleness": staleness}


def diloco(steps=10, **more):
    return {"name": "diloco", "steps": steps, **more}


def lost_samples(state, replica, replicas):
    """How many positions of `replica` of `replicas` state.json names as lost."""
    count = 0
    for _, begin, end, period, first, samples in state["lost_positions"]:
        assert period == replicas * BATCH and samples == BATCH and end > begin
        if first == replica * BATCH:
            count += (end - begin) // period * samples
    return count


def last_step(run):
    try:
        return max((record["step"] for record in support.records(run, "train")), default=0)
    except FileNotFoundError:
        return 0
