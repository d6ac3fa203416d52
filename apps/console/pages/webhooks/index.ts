import type { Route } from '../../web/route.ts';
import { createRoutes } from './create.ts';
import { deleteRoutes } from './delete.ts';
import { editRoutes } from './edit.ts';
import { headerRoutes } from './headers.ts';
import { listRoutes } from './list.ts';
import { pauseRoutes } from './pause.ts';
import { resumeRoutes } from './resume.ts';
import { rotateRoutes } from './rotate.ts';
import { testRoutes } from './test-event.ts';
import { verifyRoutes } from './verify.ts';
import { webhookRoutes } from './webhook.ts';

/** The routes of webhooks. Their deliveries are in `deliveries`. */
export const routes: readonly Route[] = [
  ...listRoutes,
  ...createRoutes,
  ...webhookRoutes,
  ...editRoutes,
  ...headerRoutes,
  ...rotateRoutes,
  ...testRoutes,
  ...verifyRoutes,
  ...pauseRoutes,
  ...resumeRoutes,
  ...deleteRoutes,
];
