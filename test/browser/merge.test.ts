import { browserTest } from "./browser-test.ts";

browserTest("a merge preview is shown although the fork changes meanwhile", async ({ server: { client }, open }) => {
  const { header } = await client.sessions.create();
  await client.sessions.addTurn(header.id, { role: "user", content: "Said before they part." });
  const fork = await client.sessions.fork(header.id, { branchName: "a try" });
  const forkId = fork.header.id;
  await client.sessions.addTurn(forkId, { role: "user", content: "Said in the fork." });
  const page = await open({ at: `#/sessions/${header.id}/compare?with=${forkId}` });
  const parted = page.getByRole("list", { name: "Turns after the common ancestor" });
  await parted.getByText("Said in the fork.").first().waitFor();

  // The first preview is answered only after the fork has changed and the page has shown that.
  let looks = 0;
  await page.route("**/merges", async (route) => {
    looks += 1;
    if (looks === 1) {
      await client.sessions.addTurn(forkId, { role: "user", content: "Said meanwhile." });
      await parted.getByText("Said meanwhile.").first().waitFor();
    }
    await route.continue();
  });
  const merge = page.getByRole("region", { name: "Merge", exact: true });
  await merge.getByRole("button", { name: "Preview" }).click();
  await merge.getByRole("heading", { name: "Preview" }).waitFor();
  await merge.getByRole("list", { name: "To append" }).getByText("Said meanwhile.").waitFor();
});
