/**
 * Whether a delivery `d` is open, for statements that read the index of open deliveries. The second
 * condition is always true. It keeps statements that do not name it from that index: the claim read
 * all queued deliveries of a webhook with it, after many others had been settled.
 */
export const isOpenSql = /* sql */ `(d.state in ('queued', 'running', 'blocked') and d.run >= 0)`;
