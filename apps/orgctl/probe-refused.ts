/** Why the probe was not created: a sentence for the operator. */
export class ProbeRefused extends Error {}
