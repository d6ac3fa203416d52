/**
 * Preloaded into a process (`node --import`): its `Date` is 10 minutes ahead. Timers and monotonic
 * clocks are not.
 */
const shiftMs = 600_000;
const RealDate = Date;

globalThis.Date = class ShiftedDate extends RealDate {
  constructor(...values) {
    super(...(values.length === 0 ? [RealDate.now() + shiftMs] : values));
  }

  static now() {
    return RealDate.now() + shiftMs;
  }
};
