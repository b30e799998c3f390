// The pages of the workbench, in the order of the navigation. The verb says which models a page is for.

export const PAGES = [
  {
    name: "translate",
    label: "Translate",
    verb: "translate",
    summary:
      "Which source words each word of a translation looks at, what else it could have been, and what changes when " +
      "you move its attention.",
  },
  {
    name: "caption",
    label: "Caption",
    verb: "caption",
    summary: "Where in a photo each word of its caption looks. Hide a part of the photo and caption it again.",
  },
  {
    name: "document",
    label: "Document",
    verb: "classify",
    summary: "Which sentences and words decide the class of a text. Take some away and see the probability move.",
  },
  {
    name: "read",
    label: "Read",
    verb: "read",
    summary: "Read a text word by word: how surprising each word is, and which earlier words the model looks back to.",
  },
  {
    name: "tape",
    label: "Tape",
    verb: "tape",
    summary: "A network that writes to a memory and reads it back, also for sequences longer than it was trained on.",
  },
  {
    name: "glimpse",
    label: "Glimpse",
    verb: "glimpse",
    summary: "Recognize a digit by a few small glimpses: where the model looks, what it sees, what it believes.",
  },
  {
    name: "convolution",
    label: "Convolution",
    verb: "recognize",
    summary: "Layer by layer: output sizes, receptive fields, filters and feature maps of an image classifier.",
  },
];
