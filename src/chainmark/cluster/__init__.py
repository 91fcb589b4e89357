"""Other machines, as the workers of a Dask cluster: functions mapped over them, and what is measured of them.

Dask (the extra `chainmark[cluster]`) is imported when a cluster is asked for, and never before.
"""
