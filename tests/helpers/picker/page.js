/** The page of the picker: what it picks of some numbers. */

export const title = "Pick";

export async function show(root, { models }) {
  const answer = await fetch("/v1/pick", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: models[0].name, input: [1, 3, 2] }),
  });
  root.append(`Picked ${(await answer.json()).results[0].value}`);
}
