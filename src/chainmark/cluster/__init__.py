"""Other machines, as the workers of a Dask cluster: functions mapped over them, and measurements of them.

Dask (the extra `chainmark[cluster]`) is imported only when a cluster is requested.
"""
