"""Puts tests of pairs into rounds, no end twice in one, by edge colouring: the fewest rounds, rarely one more."""

from typing import Dict, List, Sequence, Tuple

Pair = Tuple[str, str]


def circle(pair: "Tuple[int, int]", count: int) -> int:
    """The round of two players in a round-robin tournament, by the circle method."""
    turns = count - 1 + count % 2
    return (2 * min(pair) if max(pair) == turns else sum(pair)) % turns if turns else 0


def rounds(pairs: "Sequence[Pair]") -> "List[List[int]]":
    """The indexes of the pairs, by round."""
    names = {name: number for number, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
    edges = [(names[one], names[other]) for one, other in pairs]
    degrees = [0] * len(names)
    for edge in edges:
        for end in edge:
            degrees[end] += 1
    colours = max([-(-len(edges) // max(1, len(names) // 2)), *degrees])     # lower bound
    free = [(1 << colours) - 1 for _ in names]      # bit mask for each end
    at: "List[Dict[int, int]]" = [{} for _ in names]    # for each end, the edge of each colour
    found = [0] * len(edges)

    def paint(number: int, colour: int) -> None:
        found[number] = colour
        for end in edges[number]:
            at[end][colour] = number
            free[end] &= ~(1 << colour)

    def chain(start: int, colour: int, other: int) -> "Tuple[List[int], int]":
        """The edges of an alternating path of two colours from an end, and the end where it stops."""
        passed, end = [], start
        while colour in at[end]:
            number = at[end][colour]
            passed.append(number)
            end = edges[number][0] if edges[number][1] == end else edges[number][1]
            colour, other = other, colour
        return passed, end

    def room(one: int, other: int) -> int:
        """A colour that is free at both ends, after recolouring if necessary; -1: none."""
        both = free[one] & free[other]
        if both:
            return (both & -both).bit_length() - 1
        for mine in bits(free[one]):
            for its in bits(free[other]):
                passed, last = chain(other, mine, its)
                if last != one:
                    swapped = [(number, its if found[number] == mine else mine) for number in passed]
                    for number in passed:
                        for end in edges[number]:
                            at[end].pop(found[number], None)
                            free[end] |= 1 << found[number]
                    for number, colour in swapped:
                        paint(number, colour)
                    return mine
        return -1

    for number in sorted(range(len(edges)), key=lambda number: (edges[number][0] > edges[number][1], circle(edges[number], len(names)))):
        colour = room(*edges[number])
        if colour < 0:
            colour, colours = colours, colours + 1
            free = [mask | 1 << colour for mask in free]
        paint(number, colour)
    made: "List[List[int]]" = [[] for _ in range(colours)]
    for number, colour in enumerate(found):
        made[colour].append(number)
    return [numbers for numbers in made if numbers]


def bits(mask: int) -> "List[int]":
    return [number for number in range(mask.bit_length()) if mask >> number & 1]
