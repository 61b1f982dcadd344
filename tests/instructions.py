"""The processor's vector instructions are those that inductor finds without our help: part of
``make test-fresh``, as it asks for each in a process of its own.
"""

from forked import run_script
from torch._inductor.cpu_vec_isa import pick_vec_isa, supported_vec_isa_list

from nalm.training import compiler


def test_the_instructions_are_those_that_inductor_finds_by_itself(tmp_path):
    compiler._prepare()
    found = pick_vec_isa()
    # it takes the first; to probe those that follow takes seconds each
    better = supported_vec_isa_list[: supported_vec_isa_list.index(found) + 1]
    (tmp_path / "script.py").write_text(
        "from torch._inductor import cpu_vec_isa as isa; "
        f"del isa.supported_vec_isa_list[{len(better)}:]; print(isa.pick_vec_isa())"
    )
    ended = run_script(tmp_path / "script.py")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == str(found)
