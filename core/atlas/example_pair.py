"""The sentences of the example that the maps page opens with; by themselves, because a server's start asks for them."""

TEXT, PAIR = "The company said profits rose sharply.", "Profits went up, the company reported."
