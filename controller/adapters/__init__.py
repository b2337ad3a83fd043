"""One module per outside system. This file stays empty, so that importing one adapter pulls in one."""
