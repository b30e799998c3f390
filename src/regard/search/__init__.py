"""From a decoder's predictions to an output: greedy, sampled, or by beam. Needs only the decoder protocol."""
