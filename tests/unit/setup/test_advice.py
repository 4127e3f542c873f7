import pytest

from eloquio.setup.advice import advice, last_lines


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("npm error code ENOSPC", "disk is full"),
        ("npm error code EACCES", "can't be written"),
        ("PermissionError: [Errno 13] Permission denied: 'x'", "can't be written"),
        ("ensurepip is not available", "python3-venv"),
        ("Failed to establish: Temporary failure in name resolution", "network"),
        ("npm error code ENOTFOUND", "network"),
        ("npm error network request failed, reason: connect ECONNREFUSED", "network"),
        ("ERROR: Could not find a version that satisfies x (from versions: none)", "network"),
        ("SSL: CERTIFICATE_VERIFY_FAILED", "certificate"),
        ("npm error code EINTEGRITY", "damaged"),
        ("npm error code EUSAGE\nnpm error `npm ci` can only install", "package-lock.json"),
        ('CUDA_ARCHITECTURES is set to "native", but no GPU was detected.', "CUDA toolkit"),
        ("CUDA::cublas but the target was not found.", "cuBLAS"),
        ("No CMAKE_CXX_COMPILER could be found.", "build-essential"),
        ("ERROR: No matching distribution found for torch==9", "no build for this Python"),
        ("c++: fatal error: Killed signal terminated program cc1plus", "memory"),
        ("something nobody has seen", "goes on from here"),
    ],
)
def test_a_failure_is_told_apart_by_what_the_tool_said(output, word):
    assert word in advice(output)


def test_the_last_lines_are_shown_without_empty_ones():
    output = "".join(f"line {number}\n\n" for number in range(30))

    shown = last_lines(output, 3).splitlines()

    assert [line.strip() for line in shown] == ["line 27", "line 28", "line 29"]
