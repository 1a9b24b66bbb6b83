"""Starts the program `mcp-host` of this package: `uvx mcp-host-cli` runs a script with the name of the package."""

import os
import subprocess
import sys
import sysconfig


def main():
    name = "mcp-host.exe" if os.name == "nt" else "mcp-host"
    program = os.path.join(sysconfig.get_path("scripts"), name)
    command = [program, *sys.argv[1:]]
    if os.name == "nt":
        # Windows has no exec: the shell would not wait for the program.
        sys.exit(subprocess.call(command))
    os.execv(program, command)
