/** Why the probe was not made: a sentence for the operator. */
export class ProbeRefused extends Error {}
