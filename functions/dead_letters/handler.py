"""dead_letters: what could not be delivered, told in the log and counted. By the queue; answers with the records to try again."""

from pulse_kg.lambda_edge.jobs import dead_letters_function

handler = dead_letters_function()
