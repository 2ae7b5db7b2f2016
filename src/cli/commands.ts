import { acp } from "./acp/acp.ts";
import type { Command } from "./command.ts";
import { approvals } from "./commands/running/approvals.ts";
import { approve, deny } from "./commands/running/approve.ts";
import { cache } from "./commands/reading/cache.ts";
import { cancel } from "./commands/running/cancel.ts";
import { chat } from "./commands/chat.ts";
import { checkpoint, checkpoints, restore } from "./commands/changing/checkpoint.ts";
import { compact } from "./commands/changing/compact.ts";
import { completion } from "./commands/completion.ts";
import { copy } from "./commands/keeping/copy.ts";
import { deleteCommand, undelete } from "./commands/keeping/delete.ts";
import { docs } from "./commands/reading/docs.ts";
import { doctor } from "./commands/keeping/doctor.ts";
import { erase, exportUser } from "./commands/keeping/erase.ts";
import { exportCommand } from "./commands/keeping/export.ts";
import { fork } from "./commands/changing/fork.ts";
import { handoff } from "./commands/keeping/handoff.ts";
import { importCommand } from "./commands/keeping/import.ts";
import { label, rename } from "./commands/changing/label.ts";
import { list } from "./commands/reading/list.ts";
import { mcp } from "./commands/serving/mcp.ts";
import { merge } from "./commands/changing/merge.ts";
import { omit, undoEdit } from "./commands/changing/omit.ts";
import { open } from "./commands/serving/open.ts";
import { prune } from "./commands/keeping/prune.ts";
import { recover } from "./commands/running/recover.ts";
import { runs } from "./commands/running/runs.ts";
import { search } from "./commands/reading/search.ts";
import { serve } from "./commands/serving/serve.ts";
import { show } from "./commands/reading/show.ts";
import { stats } from "./commands/reading/stats.ts";
import { sweep } from "./commands/keeping/sweep.ts";
import { token } from "./commands/serving/token.ts";
import { tree } from "./commands/reading/tree.ts";
import { worker } from "./commands/serving/worker.ts";

const reading: readonly Command[] = [list, search, show, tree, stats, cache];
const running: readonly Command[] = [runs, approvals, approve, deny, cancel, recover];
const changing: readonly Command[] = [
  label,
  rename,
  fork,
  merge,
  compact,
  omit,
  undoEdit,
  checkpoint,
  checkpoints,
  restore,
];
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
const serving: readonly Command[] = [serve, worker, acp, mcp, open, token];
const others: readonly Command[] = [
  chat,
  ...reading,
  ...running,
  ...changing,
  ...keeping,
  ...persons,
  ...serving,
  docs,
];

/** Every command of the program, in the order of its help. */
export const commands: readonly Command[] = [...others, completion(others)];
