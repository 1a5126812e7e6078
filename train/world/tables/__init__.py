"""Facts of the small world, as plain tables."""


def rows(text, width):
    """The lines of a `a | b | c` table; each must have `width` cells."""
    table = []
    for line in text.strip().splitlines():
        cells = tuple(cell.strip() for cell in line.split("|"))
        if len(cells) != width:
            raise ValueError(f"expected {width} cells in {line!r}")
        table.append(cells)
    return table


def words(text):
    """The comma-separated entries of a text."""
    return tuple(entry.strip() for entry in text.replace("\n", " ").split(",") if entry.strip())
