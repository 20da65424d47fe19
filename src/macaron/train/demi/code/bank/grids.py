"""Grids, matrices, games and geometry."""


def rotate_grid(grid: list[list[int]]) -> list[list[int]]:
    """Rotate a grid clockwise by 90 degrees.

    >>> rotate_grid([[1, 2], [3, 4]])
    [[3, 1], [4, 2]]
    >>> rotate_grid([[1, 2, 3]])
    [[1], [2], [3]]
    """
    result = []
    for j in range(len(grid[0])):
        result.append([row[j] for row in reversed(grid)])
    return result


def tic_tac_toe_winner(board: list[str]) -> str | None:
    """Return the winner of tic-tac-toe, 'X' or 'O', on a board of three strings, or None.

    >>> tic_tac_toe_winner(["XO ", "XO ", "X  "])
    'X'
    >>> tic_tac_toe_winner(["XOX", "OXO", "OXO"]) is None
    True
    """
    lines = list(board)
    lines += ["".join(row[i] for row in board) for i in range(3)]
    lines.append("".join(board[i][i] for i in range(3)))
    lines.append("".join(board[i][2 - i] for i in range(3)))
    for player in ("X", "O"):
        if player * 3 in lines:
            return player
    return None


def is_symmetric(matrix: list[list[int]]) -> bool:
    """Check whether a square matrix equals its transpose.

    >>> is_symmetric([[1, 2], [2, 3]])
    True
    >>> is_symmetric([[1, 2], [0, 3]])
    False
    """
    size = len(matrix)
    for i in range(size):
        for j in range(i):
            if matrix[i][j] != matrix[j][i]:
                return False
    return True


def row_with_most(grid: list[list[int]], value: int) -> int:
    """Return the index of the row in which value occurs most often, the first one in case of a tie.

    >>> row_with_most([[0, 1], [1, 1], [0, 0]], 1)
    1
    >>> row_with_most([[2, 2], [2, 2]], 2)
    0
    """
    best = 0
    for i, row in enumerate(grid):
        if row.count(value) > grid[best].count(value):
            best = i
    return best


def neighbor_sum(grid: list[list[int]], row: int, column: int) -> int:
    """Return the sum of the cells directly above, below, left and right of a cell.

    >>> neighbor_sum([[1, 2, 3], [4, 5, 6], [7, 8, 9]], 1, 1)
    20
    >>> neighbor_sum([[1, 2], [3, 4]], 0, 0)
    5
    """
    total = 0
    for i, j in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
        if 0 <= i < len(grid) and 0 <= j < len(grid[0]):
            total += grid[i][j]
    return total


def identity_matrix(n: int) -> list[list[int]]:
    """Build the identity matrix of size n.

    >>> identity_matrix(2)
    [[1, 0], [0, 1]]
    >>> identity_matrix(0)
    []
    """
    return [[1 if i == j else 0 for j in range(n)] for i in range(n)]


def determinant_2x2(matrix: list[list[int]]) -> int:
    """Return the determinant of a 2 by 2 matrix.

    >>> determinant_2x2([[1, 2], [3, 4]])
    -2
    >>> determinant_2x2([[2, 0], [0, 5]])
    10
    """
    (a, b), (c, d) = matrix
    return a * d - b * c


def is_magic_square(square: list[list[int]]) -> bool:
    """Check whether all rows, columns and both diagonals of a square have the same sum.

    >>> is_magic_square([[2, 7, 6], [9, 5, 1], [4, 3, 8]])
    True
    >>> is_magic_square([[1, 2], [3, 4]])
    False
    """
    n = len(square)
    sums = [sum(row) for row in square]
    sums += [sum(row[j] for row in square) for j in range(n)]
    sums.append(sum(square[i][i] for i in range(n)))
    sums.append(sum(square[i][n - 1 - i] for i in range(n)))
    return len(set(sums)) == 1


def move_robot(commands: str) -> tuple[int, int]:
    """Return where a robot ends that starts at (0, 0) and follows the commands U, D, L and R.

    >>> move_robot("UURD")
    (1, 1)
    >>> move_robot("")
    (0, 0)
    """
    x = y = 0
    for command in commands:
        if command == "U":
            y += 1
        elif command == "D":
            y -= 1
        elif command == "L":
            x -= 1
        elif command == "R":
            x += 1
    return x, y


def count_paths(rows: int, columns: int) -> int:
    """Count the ways from the top left to the bottom right of a grid, moving only right or down.

    >>> count_paths(3, 3)
    6
    >>> count_paths(1, 5)
    1
    """
    ways = [1] * columns
    for _ in range(rows - 1):
        for j in range(1, columns):
            ways[j] += ways[j - 1]
    return ways[-1]


def rectangles_overlap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> bool:
    """Check whether two rectangles, each given as (left, bottom, right, top), share some area.

    >>> rectangles_overlap((0, 0, 2, 2), (1, 1, 3, 3))
    True
    >>> rectangles_overlap((0, 0, 1, 1), (1, 0, 2, 1))
    False
    """
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def polygon_perimeter(points: list[tuple[float, float]]) -> float:
    """Return the perimeter of a polygon given by its corners.

    >>> polygon_perimeter([(0, 0), (3, 0), (3, 4)])
    12.0
    >>> polygon_perimeter([(0, 0), (0, 1), (1, 1), (1, 0)])
    4.0
    """
    total = 0.0
    for i, (x1, y1) in enumerate(points):
        x2, y2 = points[(i + 1) % len(points)]
        total += ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    return total


def chessboard(size: int) -> list[str]:
    """Return a chessboard as strings of # and ., with # at the top left.

    >>> chessboard(3)
    ['#.#', '.#.', '#.#']
    >>> chessboard(1)
    ['#']
    """
    rows = []
    for i in range(size):
        rows.append("".join("#" if (i + j) % 2 == 0 else "." for j in range(size)))
    return rows


def rock_paper_scissors(first: str, second: str) -> int:
    """Return 1 if the first player wins at rock, paper, scissors, 2 if the second one does, and 0 for a draw.

    >>> rock_paper_scissors("rock", "scissors")
    1
    >>> rock_paper_scissors("rock", "rock")
    0
    """
    beats = {"rock": "scissors", "scissors": "paper", "paper": "rock"}
    if first == second:
        return 0
    return 1 if beats[first] == second else 2
