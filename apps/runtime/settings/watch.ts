import type { Registry } from 'prom-client';
import { IntervalLoop } from '../flow/interval-loop.ts';
import { errorLogger, type Logger } from '../log.ts';
import { metricsIn } from '../metrics.ts';
import type { FollowedSettings, FollowReport } from './follow.ts';

/**
 * Reads the files of followed settings again every few seconds, logs each change by the setting's
 * name, and counts it. A rejected value shows as `org_api_setting_rejected` 1; the old one stays in
 * use. `org_api_setting_read_timestamp_seconds` shows when all processes have a Secret's new value,
 * and reveals nothing about it, unlike a hash of a weak password.
 *
 * It polls, because Kubernetes mounts a file as a link into a folder that it replaces as a whole,
 * which file watchers miss.
 */
export function watchSettings(options: {
  followed: Pick<FollowedSettings<unknown>, 'names' | 'check'>;
  registry: Registry;
  log: Logger;
}): IntervalLoop {
  const { followed, registry, log } = options;
  const report = reportSettings({ names: followed.names, registry, log });
  for (const name of followed.names) report.onRead(name);
  return new IntervalLoop({
    run: () => followed.check(report),
    everyMs: 2_000,
    onError: errorLogger(log, 'the files of settings could not be read; tried again in seconds'),
  });
}

/** A report whose settings can come and go while the process runs. */
export interface SettingReport extends FollowReport {
  /** Called when the process begins to use a setting, with the value that it has then. */
  onRead(setting: string): void;
  /** Called when the process does not use the setting any more. */
  onForgotten(setting: string): void;
}

/** Returns the report that logs and counts changes of the settings of these names. */
export function reportSettings(options: { names: readonly string[]; registry: Registry; log: Logger }): SettingReport {
  const { names, registry, log } = options;
  const { counter, gauge } = metricsIn(registry);
  const changes = counter(
    'org_api_setting_changes_total',
    'New values of settings that were taken from their files while the process ran.',
    'setting',
  );
  const rejected = gauge(
    'org_api_setting_rejected',
    '1 while the file of a setting holds a value that cannot be used; the old one is still in use.',
    'setting',
  );
  const readAt = gauge(
    'org_api_setting_read_timestamp_seconds',
    'When the value in use was read from its file, in seconds since 1970.',
    'setting',
  );
  for (const setting of names) {
    changes.inc({ setting }, 0); // a series that begins with its first change does not increase by it
    rejected.set({ setting }, 0);
  }
  function onRead(setting: string): void {
    rejected.set({ setting }, 0);
    readAt.setToCurrentTime({ setting });
  }
  return {
    onRead,
    onChanged: (setting) => {
      changes.inc({ setting });
      onRead(setting);
      log.info({ setting }, 'the setting was read again from its file');
    },
    onForgotten: (setting) => {
      rejected.set({ setting }, 0);
      readAt.remove({ setting });
    },
    onRejected: (setting, reason) => {
      rejected.set({ setting }, 1);
      log.error({ setting, reason }, 'the new value of a setting is rejected; the old one stays in use');
    },
  };
}
