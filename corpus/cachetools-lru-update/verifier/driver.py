"""Play a list of operations on a cache and tell what is in it, in order of insertion and as evicted."""

import sys


def prepare(repository):
    sys.path.insert(0, repository + "/src")
    import cachetools

    return cachetools


def answer(cachetools, given):
    options = {"getsizeof": len} if given.get("sized") else {}
    cache = getattr(cachetools, given["cache"])(given["maxsize"], **options)
    seen = []
    for operation, *operands in given["do"]:
        if operation == "set":
            cache[operands[0]] = operands[1]
        elif operation == "get":
            seen.append(cache.get(*operands))
        elif operation == "in":
            seen.append(operands[0] in cache)
        elif operation == "del":
            del cache[operands[0]]
        elif operation == "popitem":
            seen.append(list(cache.popitem()))
        else:
            seen.append(getattr(cache, operation)(*operands))
    return {"seen": seen, "left": sorted(cache.items()), "size": cache.currsize}
