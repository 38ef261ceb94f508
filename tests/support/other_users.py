"""other_users.py: for tests in which programs become another user: what those read stands where they may, wherever the
checkout is and whatever the umask."""
import os
import shutil


def open_to_all(folder, library):
    """Everybody may look into the folder, which gets a copy of the library; answers its path."""
    os.umask(0o022)
    os.chmod(folder, 0o755)
    copy = os.path.join(folder, "lib", os.path.basename(library))
    os.mkdir(os.path.dirname(copy))
    shutil.copyfile(library, copy)
    os.chmod(copy, 0o755)
    return copy
