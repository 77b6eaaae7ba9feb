"""The program that runs inside the containers of a task's image: POSIX shell, see the README beside it."""
