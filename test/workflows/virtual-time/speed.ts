/**
 * The factor by which time passes faster for a workflow in virtual time: 72 hours in 13 seconds.
 */
export const timesFaster = 20_000;
