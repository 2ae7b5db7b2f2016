import type { Command } from "./command.ts";
import { checkpoint } from "./commands/checkpoint.ts";
import { checkpoints } from "./commands/checkpoints.ts";
import { compact } from "./commands/compact.ts";
import { completion } from "./commands/completion.ts";
import { copy } from "./commands/copy.ts";
import { deleteCommand } from "./commands/delete.ts";
import { doctor } from "./commands/doctor.ts";
import { fork } from "./commands/fork.ts";
import { label } from "./commands/label.ts";
import { list } from "./commands/list.ts";
import { merge } from "./commands/merge.ts";
import { prune } from "./commands/prune.ts";
import { rename } from "./commands/rename.ts";
import { restore } from "./commands/restore.ts";
import { search } from "./commands/search.ts";
import { show } from "./commands/show.ts";
import { stats } from "./commands/stats.ts";
import { sweep } from "./commands/sweep.ts";
import { tree } from "./commands/tree.ts";
import { undelete } from "./commands/undelete.ts";

const reading: readonly Command[] = [list, search, show, tree, stats];
const changing: readonly Command[] = [label, rename, fork, merge, compact, checkpoint, checkpoints, restore];
const keeping: readonly Command[] = [deleteCommand, undelete, prune, sweep, copy, doctor];
const others: readonly Command[] = [...reading, ...changing, ...keeping];

/** Every command of the program, in the order of its help. */
export const commands: readonly Command[] = [...others, completion(others)];
