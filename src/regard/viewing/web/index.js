// Defines all elements. Loading this twice, as a notebook with several outputs does, defines them once.

import { AttentionDocument } from "./document.js";
import { AttentionGlimpses } from "./glimpses.js";
import { AttentionHeads } from "./heads.js";
import { AttentionImage } from "./image.js";
import { AttentionLines } from "./lines.js";
import { AttentionMatrix } from "./matrix.js";
import { AttentionReading } from "./reading.js";
import { AttentionTape } from "./tape.js";
import { AttentionView } from "./view.js";

const ELEMENTS = {
  "attention-matrix": AttentionMatrix,
  "attention-lines": AttentionLines,
  "attention-heads": AttentionHeads,
  "attention-image": AttentionImage,
  "attention-document": AttentionDocument,
  "attention-reading": AttentionReading,
  "attention-tape": AttentionTape,
  "attention-glimpses": AttentionGlimpses,
  // The last one, since it looks up the others when it is upgraded.
  "attention-view": AttentionView,
};

for (const [name, element] of Object.entries(ELEMENTS)) {
  if (!customElements.get(name)) customElements.define(name, element);
}
