import subprocess
import sys

SLOW = {"torch._dynamo", "sympy", "sklearn", "scipy.optimize", "pandas", "lightning"}
LOAD = "import sys; from setrnn import load; [load(each, 'cpu') for each in sys.argv[1:]]; "


def test_loading_imports_nothing_that_takes_longer_than_all_else(taggers, tmp_path):
    folders = [tmp_path / method for method in taggers]
    for method, folder in zip(taggers, folders, strict=True):
        taggers[method].save(folder)
    code = LOAD + "print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *folders], capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert "torch" in modules
    assert SLOW & modules == set()
