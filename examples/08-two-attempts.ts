// Fork and merge: two attempts at the same task, each with its own copy of the files, at the same time; the better one is kept.
import assert from "node:assert/strict";
import { createAgent, Session } from "skein";
import { offline } from "skein/offline";
import { lineageUsage, toMermaid, validateAcyclic } from "skein/session";

const agent = createAgent({ prompt: "You keep a small workspace.", model: offline() });

const task = Session.create({ text: 'write "draft" to plan.txt' }).to("local");
await using start = await agent.run(task);

// An isolated fork has its own copy of the workspace. A plain fork() would share it.
await using left = await start.forkIsolated();
await using right = await start.forkIsolated();
const wishes = ['write "go by train" to plan.txt', 'write "go by boat, and take two days" to plan.txt'].map((text) =>
  Session.create({ text }),
) as [Session, Session];
const requests = [left.merge(wishes[0]), right.merge(wishes[1])];
const attempts = await Promise.all(requests.map((request) => agent.run(request)));

const planOf = async (session: Session) =>
  new TextDecoder().decode(await (await session.requireSandbox()).readFile("plan.txt"));
const plans = await Promise.all(attempts.map(planOf));
console.log(plans);
assert.deepEqual(plans, ["go by train", "go by boat, and take two days"]);
assert.equal(await planOf(start), "draft"); // neither attempt changed the other's files, or the source's

// The longer plan is kept; the merge has the rows of both, and the first one's workspace.
const [train, boat] = attempts as [Session, Session];
await using chosen = boat.merge(train);
assert.equal(await planOf(chosen), "go by boat, and take two days");
assert.equal(chosen.transcript.length, boat.transcript.length + train.transcript.length);

// The lineage, and its cost: every operation once.
const known = [agent.session, task, start, left, right, ...wishes, ...requests, ...attempts, chosen];
validateAcyclic(known);
console.log(toMermaid(known));
const { usage } = lineageUsage(known, chosen.id);
const spent = [start, train, boat].reduce((sum, session) => sum + (session.usage?.totalTokens ?? 0), 0);
assert.equal(usage.totalTokens, spent);
for (const session of [task, ...requests, ...attempts]) await session.closeSandbox();
