package sample

import (
	"math/rand/v2"
	"strings"
)

// kinds are the categories of a store, and how common each is.
var kinds = []struct {
	name   string
	weight int
}{
	{"Dogs", 18}, {"Cats", 17}, {"Rabbits", 7}, {"Guinea pigs", 6}, {"Hamsters", 6}, {"Goldfish", 6},
	{"Budgerigars", 5}, {"Canaries", 3}, {"Cockatiels", 3}, {"Mice", 3}, {"Guppies", 3},
	{"Parrots", 2}, {"Finches", 2}, {"Lovebirds", 2}, {"Chickens", 2}, {"Rats", 2}, {"Gerbils", 2},
	{"Chinchillas", 2}, {"Ferrets", 2}, {"Tortoises", 2}, {"Turtles", 2}, {"Geckos", 2},
	{"Bearded dragons", 2}, {"Fighting fish", 2}, {"Ducks", 1}, {"Quails", 1}, {"Degus", 1},
	{"Hedgehogs", 1}, {"Iguanas", 1}, {"Corn snakes", 1}, {"Tree frogs", 1}, {"Axolotls", 1},
	{"Koi", 1}, {"Hermit crabs", 1}, {"Ponies", 1}, {"Goats", 1},
}

// kindTable contains the index of each kind as often as its weight.
var kindTable = func() (table []int) {
	for i, kind := range kinds {
		for range kind.weight {
			table = append(table, i)
		}
	}
	return table
}()

var (
	callNames = strings.Fields(`Abby Ada Ajax Albie Alfie Amber Angus Apollo Archie Aria Asta Athena Babette Bailey Balu
		Bandit Barnaby Basil Bella Benji Bertie Biscuit Blanca Blue Bonnie Boris Bramble Bruno Bubbles Buddy Buttons
		Caesar Caramel Casper Chai Charlie Chester Chili Chloé Clementine Cleo Clover Coco Cookie Copper
		Cosmo Daisy Dakota Darwin Dexter Django Dolly Domino Dora Dusty Echo Eddie Ella Elmo Elsa Emil Ernie Esme
		Fanny Felix Fern Fidget Figaro Filou Finn Fiona Flash Flora Freya Fritz Gandalf Gigi Gilbert Ginger Gizmo Goldie
		Greta Gus Gustav Hannibal Harley Harper Hazel Heidi Henry Hermes Honey Hugo Iggy Inka Iris Ivy Jack
		Jasper Jazz Joker Josie Juno Kasimir Kiki Kira Koda Leo Lexi Lilo Loki Lola Lotte Louie Lucky Lulu Luna
		Mabel Maggie Maja Marble Marley Max Maya Merlin Mia Mika Milo Mimi Minnie Misty Mitzi Mochi Molly Momo Monty
		Moritz Mozart Muffin Nala Nanook Nelly Nemo Nero Nina Noodle Nugget Oakley Odin Ollie Olive Oreo Oscar Otis
		Otto Paddy Pascal Paula Peaches Peanut Pearl Pedro Penny Pepper Percy Pickle Pina Pixel Pluto Polly Poppy
		Pretzel Pumpkin Quincy Ralph Raven Remy Rex Rico Rocky Romeo Rosie Roxy Ruby Rudi Rufus Rusty Sadie Sammy
		Scout Shadow Simba Sissi Smokey Snowy Socks Sophie Sparky Stella Storm Sunny Susi Taco Tango Teddy Thor
		Tiger Tilly Tinker Titus Toffee Truffle Tuxedo Uma Ursula Velvet Venus Vito Waffles Walter Wanda Willow
		Winnie Wolfi Xaver Xena Yoda Yoshi Yuki Zara Zelda Zeus Ziggy Zoë`)
	secondNames = strings.Fields(`Belle Blossom Boo Grace Jane Jo Joy June Lee Lou Mae Marie Moon Pie Ray Rose Sky Star Sue Wren`)
	titles      = strings.Fields(`Baron Captain Count Doctor Duchess General Lady Lord Madame Miss Mister Princess Professor Queen Sir`)
	traits      = strings.Fields(`Bold Brave Bright Calm Clever Curious Dapper Fearless Fluffy Gentle Grand Great Humble Jolly
		Kind Lazy Little Loud Merry Mighty Noble Patient Polite Proud Quick Quiet Round Sleepy Sly Small Swift
		Tender Tiny Wild Wise`)
)

// petName makes up a name for a pet.
func petName(random *rand.Rand) string {
	name := pick(random, callNames)
	switch p := random.IntN(100); {
	case p < 12:
		return name + " " + pick(random, secondNames)
	case p < 22:
		return pick(random, titles) + " " + name
	case p < 36:
		return name + " the " + pick(random, traits)
	}
	return name
}

func pick[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }
