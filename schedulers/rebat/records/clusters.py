# SPDX-License-Identifier: Apache-2.0
"""Records of several clusters in one file: they share ids of jobs, but must not share nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from rebat.core.errors import InputError
from rebat.records.hosts import expanded
from rebat.records.judge import finding, listed
from rebat.records.table import Rows


def of_cluster(table: Rows, cluster: str | None) -> Rows:
    """Return the rows of a cluster. With None, check that all node names are of one cluster.

    Raises
    ------
    InputError
        If the cluster has no row, or a node name is in several clusters.
    """
    clusters = table.text("cluster")
    names = sorted(set(clusters.tolist()) - {""})
    if cluster is not None:
        if cluster not in names:
            expected = f"one of: {', '.join(names)}" if names else "records with a column Cluster"
            raise InputError(f"has no records of cluster {cluster!r}", table.where, expected)
        return table.taken(clusters == cluster)
    if len(names) > 1:
        lists: defaultdict[str, set[str]] = defaultdict(set)
        for name, hosts in set(zip(clusters.tolist(), table.text("hosts").tolist(), strict=True)):
            lists[name].add(hosts)
        check_clusters(lists, table.where)
        text = (
            f"the records are of {len(names)} clusters ({listed(names)}): imported as one machine"
        )
        table.notes.append(finding(text, "import with --cluster NAME to use one of them"))
    return table


def check_clusters(lists: Mapping[str, set[str]], where: str) -> None:
    """Check that no node name occurs in several clusters.

    Parameters
    ----------
    lists : dict of set of str
        Lists of node names by cluster.
    where : str
        Path of the file.

    Raises
    ------
    InputError
        If a name is in two clusters.
    """
    clusters: dict[str, str] = {}
    for cluster, texts in sorted(lists.items()) if len(lists) > 1 else ():
        for name in sorted({name for text in texts for name in expanded(text)}):
            other = clusters.setdefault(name, cluster)
            if other != cluster:
                raise InputError(
                    f"node {name} is in the clusters {other} and {cluster}",
                    where,
                    f"--cluster with one of: {', '.join(sorted(lists))}",
                )
