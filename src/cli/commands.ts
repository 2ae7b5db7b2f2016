import { acp } from "./acp/acp.ts";
import type { Command } from "./command.ts";
import { approvals } from "./commands/approvals.ts";
import { approve } from "./commands/approve.ts";
import { cancel } from "./commands/cancel.ts";
import { chat } from "./commands/chat.ts";
import { checkpoint } from "./commands/checkpoint.ts";
import { checkpoints } from "./commands/checkpoints.ts";
import { compact } from "./commands/compact.ts";
import { completion } from "./commands/completion.ts";
import { copy } from "./commands/copy.ts";
import { deleteCommand } from "./commands/delete.ts";
import { deny } from "./commands/deny.ts";
import { doctor } from "./commands/doctor.ts";
import { erase } from "./commands/erase.ts";
import { exportCommand } from "./commands/export.ts";
import { exportUser } from "./commands/export-user.ts";
import { fork } from "./commands/fork.ts";
import { handoff } from "./commands/handoff.ts";
import { importCommand } from "./commands/import.ts";
import { label } from "./commands/label.ts";
import { list } from "./commands/list.ts";
import { merge } from "./commands/merge.ts";
import { open } from "./commands/open.ts";
import { prune } from "./commands/prune.ts";
import { recover } from "./commands/recover.ts";
import { rename } from "./commands/rename.ts";
import { restore } from "./commands/restore.ts";
import { runs } from "./commands/runs.ts";
import { search } from "./commands/search.ts";
import { serve } from "./commands/serve.ts";
import { show } from "./commands/show.ts";
import { stats } from "./commands/stats.ts";
import { sweep } from "./commands/sweep.ts";
import { token } from "./commands/token.ts";
import { tree } from "./commands/tree.ts";
import { undelete } from "./commands/undelete.ts";
import { worker } from "./commands/worker.ts";

const reading: readonly Command[] = [list, search, show, tree, stats];
const running: readonly Command[] = [runs, approvals, approve, deny, cancel, recover];
const changing: readonly Command[] = [label, rename, fork, merge, compact, checkpoint, checkpoints, restore];
const keeping: readonly Command[] = [
  exportCommand,
  importCommand,
  handoff,
  copy,
  deleteCommand,
  undelete,
  prune,
  sweep,
  doctor,
];
const persons: readonly Command[] = [exportUser, erase];
const serving: readonly Command[] = [serve, worker, acp, open, token];
const others: readonly Command[] = [chat, ...reading, ...running, ...changing, ...keeping, ...persons, ...serving];

/** Every command of the program, in the order of its help. */
export const commands: readonly Command[] = [...others, completion(others)];
