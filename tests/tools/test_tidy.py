"""The ratchet shows what grew past a screen, and nothing else."""

from tools.tidy import grown


def function(name: str, lines: int) -> str:
    return f"def {name}():\n" + "    pass\n" * (lines - 1)


def test_a_long_function_is_named_once_it_grows() -> None:
    assert grown(function("f", 61), function("f", 62)) == [(1, "f", 61, 62)]


def test_a_new_long_function_is_named() -> None:
    assert grown("", function("f", 61)) == [(1, "f", 0, 61)]


def test_what_was_long_already_or_became_shorter_is_left_in_peace() -> None:
    assert grown(function("f", 90), function("f", 90)) == []
    assert grown(function("f", 90), function("f", 70)) == []


def test_sixty_lines_are_not_too_many() -> None:
    assert grown("", function("f", 60)) == []


def test_methods_and_inner_functions_go_by_their_whole_name() -> None:
    body = "".join(f"    {line}\n" for line in function("run", 61).splitlines())
    assert [name for _, name, *_ in grown("", f"class A:\n{body}class B:\n{body}")] == ["A.run", "B.run"]
